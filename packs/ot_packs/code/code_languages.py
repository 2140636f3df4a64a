"""The languages that the pack knows: their files, and which nodes of their syntax trees define something."""

from __future__ import annotations

EXTENSIONS: dict[str, tuple[str, ...]] = {
    "python": ("py", "pyi"),
    "javascript": ("js", "mjs", "cjs", "jsx"),
    "typescript": ("ts", "mts", "cts", "tsx"),
    "go": ("go",),
    "rust": ("rs",),
    "java": ("java",),
    "c": ("c", "h"),
    "cpp": ("cpp", "cc", "cxx", "hpp", "hh", "hxx"),
    "csharp": ("cs",),
    "kotlin": ("kt", "kts"),
    "swift": ("swift",),
    "php": ("php",),
    "ruby": ("rb",),
    "scala": ("scala", "sc"),
    "lua": ("lua",),
    "bash": ("sh", "bash"),
}
LANGUAGES = {extension: language for language, extensions in EXTENSIONS.items() for extension in extensions}

_C = {
    "function_definition": "function",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "type_definition": "type",
}
_JAVASCRIPT = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
    "variable_declarator": "function",
}
_TYPESCRIPT = _JAVASCRIPT | {
    "abstract_class_declaration": "class",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "module",
    "public_field_definition": "method",
}
DEFINITIONS: dict[str, dict[str, str]] = {
    "python": {"function_definition": "function", "class_definition": "class"},
    "javascript": _JAVASCRIPT | {"field_definition": "method"},
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": {
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
        "type_alias": "type",
    },
    "rust": {
        "function_item": "function",
        "function_signature_item": "function",
        "struct_item": "struct",
        "union_item": "union",
        "enum_item": "enum",
        "trait_item": "trait",
        "impl_item": "impl",
        "mod_item": "module",
        "type_item": "type",
        "macro_definition": "macro",
    },
    "java": {
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "class",
        "annotation_type_declaration": "interface",
        "method_declaration": "method",
        "constructor_declaration": "method",
    },
    "c": _C,
    "cpp": _C | {"class_specifier": "class", "namespace_definition": "module", "alias_declaration": "type"},
    "csharp": {
        "class_declaration": "class",
        "struct_declaration": "struct",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "class",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "local_function_statement": "function",
    },
    "kotlin": {"function_declaration": "function", "class_declaration": "class", "object_declaration": "object"},
    "swift": {"function_declaration": "function", "class_declaration": "class", "protocol_declaration": "interface"},
    "php": {
        "function_definition": "function",
        "class_declaration": "class",
        "interface_declaration": "interface",
        "trait_declaration": "trait",
        "enum_declaration": "enum",
        "method_declaration": "method",
    },
    "ruby": {"method": "function", "singleton_method": "function", "class": "class", "module": "module"},
    "scala": {
        "function_definition": "function",
        "class_definition": "class",
        "object_definition": "object",
        "trait_definition": "trait",
        "enum_definition": "enum",
    },
    "lua": {"function_declaration": "function"},
    "bash": {"function_definition": "function"},
}
NAMES = (
    "identifier",
    "type_identifier",
    "field_identifier",
    "property_identifier",
    "private_property_identifier",
    "shorthand_property_identifier",
    "shorthand_property_identifier_pattern",
    "namespace_identifier",
    "package_identifier",
    "simple_identifier",
    "name",
    "constant",
    "word",
)
"""Nodes that are names; no language has all of them."""
TYPES = frozenset(("class", "struct", "union", "interface", "trait", "impl", "enum", "object", "extension", "actor"))
"""A function directly inside one of these is a method."""
CALLS = frozenset(
    (
        "call",
        "call_expression",
        "method_invocation",
        "invocation_expression",
        "function_call",
        "function_call_expression",
        "member_call_expression",
        "nullsafe_member_call_expression",
        "scoped_call_expression",
        "macro_invocation",
        "command_name",
        "new_expression",
        "object_creation_expression",
    )
)
MEMBERS = frozenset(
    (
        "attribute",
        "member_expression",
        "field_expression",
        "selector_expression",
        "scoped_identifier",
        "qualified_identifier",
        "member_access_expression",
        "navigation_expression",
        "navigation_suffix",
        "dot_index_expression",
        "method_index_expression",
        "generic_function",
        "generic_name",
        "template_function",
    )
)
IMPORTS = frozenset(("use_declaration", "using_directive", "preproc_include", "namespace_use_declaration"))
"""Beside those with 'import' in their name."""


def grammar_of(extension: str) -> str:
    """Return the grammar that reads files with this extension."""
    return "tsx" if extension == "tsx" else LANGUAGES[extension]


def language_named(name: str) -> str:
    """Return the language that has this name or this extension.

    Raises:
        ValueError: No language has it.
    """
    found = name if name in EXTENSIONS else LANGUAGES.get(name.lower())
    if found is None:
        raise ValueError(f"language must be one of {', '.join(EXTENSIONS)}, got {name!r:.100}")
    return found
