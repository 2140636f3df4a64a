"""LiveTokens: named tokens as the configuration has them now, so that one which is removed is refused at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onetool_team.auth.static_tokens import StaticTokens
from onetool_team.auth.token_file import named_tokens, token_file
from onetool_team.identity import Identity
from onetool_team.live_configuration import LastGood, LiveConfiguration


class LiveTokens:
    """Looks at the files before each token, which costs a few microseconds."""

    def __init__(self, configuration: LiveConfiguration) -> None:
        """Accept the tokens that *configuration* has, and those of the file that it names.

        Raises:
            ConfigError: That file cannot be used.
        """
        self._configuration = configuration
        self._tokens = LastGood(self._read)
        configuration.watch(self._tokens)

    async def identify(self, token: str) -> Identity:
        """Return whose *token* it is; see ``Authenticator``."""
        await self._configuration.refresh()
        return await self._tokens.value.identify(token)

    def _read(self) -> tuple[StaticTokens, Sequence[Path]]:
        settings = self._configuration.settings
        global_dir = self._configuration.paths.global_dir
        files = (token_file(settings.tokens_file, global_dir),) if settings.tokens_file else ()
        return StaticTokens(named_tokens(settings, global_dir)), files
