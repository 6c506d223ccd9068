"""The demonstration model, and texts for it."""

import pathlib

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "demonstration"
TEXTS = ["The animal didn't cross the street because it was too tired.", "the robot", "机器人拿起红色的积木,因为它很轻"]
