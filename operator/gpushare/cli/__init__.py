"""The command line: one module a command, each only parses and dispatches.

Belongs here: click, options, exit codes, printing what `views` composed. Does not belong here: any decision.
"""
