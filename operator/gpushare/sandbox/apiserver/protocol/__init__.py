"""How the API speaks: bodies that come in, forms in which objects go out, and pages that say what kinds there are.

Belongs here: JSON, YAML, protobuf, Tables, discovery, OpenAPI. Does not belong here: sockets and HTTP (`server`), and what is
done with what was read.
"""
