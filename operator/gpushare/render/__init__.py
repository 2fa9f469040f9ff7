"""The door to Jinja: templates become manifests, decorated and in order of application.

Belongs here: templates, common labels, hashes, order. Does not belong here: which values go into a template.
"""
