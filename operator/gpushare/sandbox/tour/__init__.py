"""The walk-through: what people type to share GPUs, run through real kubectl, each answer held against what it should be.

Belongs here: steps and the engine that runs them. Does not belong here: anything that looks into the sandbox from behind;
a step sees only what a person sees.
"""
