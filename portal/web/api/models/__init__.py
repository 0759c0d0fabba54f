"""The answers of the REST API as pydantic models, by subject.

An answer is built from core values by its classmethod `of`; it is the JSON, its schema is a part
of the OpenAPI document, and the pages read its attributes.
"""
