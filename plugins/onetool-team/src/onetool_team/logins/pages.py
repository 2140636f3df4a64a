"""The pages that people see on their way to a login: plain HTML without scripts, which no other page may show."""

from __future__ import annotations

import base64
import hashlib
from html import escape

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --page: #f6f8fa; --card: #fff; --line: #d0d7de;
  --accent: #1f6feb; --warn: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9198a1; --page: #0d1117; --card: #161b22;
  --line: #30363d; --accent: #4493f8; --warn: #d29922 } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--page);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif }
main { width: 100%; max-width: 27rem; background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 2rem }
h1 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 1rem }
p { margin: 0 0 1rem }
p:last-child { margin-bottom: 0 }
small { color: var(--soft); font-size: .875rem }
.warn { border-left: 3px solid var(--warn); padding-left: .75rem }
form { margin-bottom: 1.25rem }
label { display: block; font-weight: 600; margin-bottom: .4rem }
input, button { width: 100%; font: inherit; padding: .65rem .8rem; border-radius: 8px; border: 1px solid var(--line) }
input { background: var(--page); color: var(--text); font: 1.2rem ui-monospace, monospace; letter-spacing: .15em;
  text-transform: uppercase; margin-bottom: .8rem }
button { background: var(--accent); border-color: var(--accent); color: #fff; font-weight: 600; cursor: pointer }
button:focus-visible, input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

HEADERS = {
    "cache-control": "no-store",
    # No form-action: browsers hold it against every address that the authorization server redirects to, too.
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex",
}
"""Of every page."""


def page(title: str, *parts: str) -> str:
    """Return a whole page; *parts* are HTML."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - OneTool</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>{escape(title)}</h1>{''.join(parts)}</main></body></html>\n"
    )


def start_page(server: str, who: str, host: str, tries_left: int | None = None) -> str:
    """Return the page from which a browser leaves for *host*, the authorization server."""
    wrong = f'<p class="warn">That is not the code. {_tries(tries_left)}</p>' if tries_left is not None else ""
    return page(
        f"Log in to {server}",
        f"<p>You will log in at <b>{escape(host)}</b>. OneTool then uses that account for <b>{escape(who)}</b>.</p>",
        wrong,
        '<form method="post"><label for="code">Code from your own client</label>'
        '<input id="code" name="code" required autofocus maxlength="9" autocomplete="off" spellcheck="false">'
        "<button>Go on to log in</button></form>",
        '<p class="warn"><small>Did somebody else send you this address or a code? Close this page: they would '
        "get to use your account.</small></p>",
    )


def _tries(left: int | None) -> str:
    return "One try is left." if left == 1 else f"{left} tries are left."


def message_page(title: str, text: str) -> str:
    """Return a page that says something."""
    return page(title, f"<p>{escape(text)}</p>")
