"""APIs described by OpenAPI documents, as servers whose tools are the API's operations."""
