"""APIs that an OpenAPI document describes, as servers whose tools are its operations."""
