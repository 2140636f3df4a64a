"""The commands of the plugin, and the edge that ``onetool serve --http`` hands over to."""
