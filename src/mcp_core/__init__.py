"""Typed tools: an argument model, a result that is always JSON, a description made from both.

A tool is a function of one argument model that returns a `Result`:

    >>> from mcp_core import Result, ToolArguments, validated
    >>> class GreetArguments(ToolArguments):
    ...     name: str
    >>> def greet(args: GreetArguments) -> Result[str]:
    ...     '''Greet somebody.'''
    ...     return Result.ok(f"Hello, {args.name}")
    >>> greet(GreetArguments(name="Ada")).to_json_str()
    '{"success":true,"value":"Hello, Ada"}'

Arguments from outside are checked, and what is wrong with them is a result too:

    >>> validated(GreetArguments, {"nmae": "Ada"}).error
    'name: Field required; nmae: Extra inputs are not permitted'

`mcp_core.typed_tools` serves such tools over MCP and needs fastmcp; all the rest needs pydantic alone.
"""

from mcp_core.consent import Consent
from mcp_core.program_function import program_function
from mcp_core.published_schema import returned_schema
from mcp_core.result import Result, ToolFailure
from mcp_core.tool_arguments import ToolArguments, arguments_model
from mcp_core.tool_decorator import TRACE, ExtMcpToolDecorator
from mcp_core.validation import validated

__all__ = [
    "TRACE",
    "Consent",
    "ExtMcpToolDecorator",
    "Result",
    "ToolArguments",
    "ToolFailure",
    "arguments_model",
    "program_function",
    "returned_schema",
    "validated",
]
