"""Response models of the REST API (pydantic), by subject.

A response model is built from core values by its classmethod `of`. It is serialised to the JSON
body, its schema is part of the OpenAPI document, and the pages read its attributes.
"""
