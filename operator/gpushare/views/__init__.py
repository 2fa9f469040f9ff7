"""Tables and texts for people, JSON and YAML for programs.

Belongs here: values to text. Does not belong here: terminals, files, fetching what is shown.
"""
