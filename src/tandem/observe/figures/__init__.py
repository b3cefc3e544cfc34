"""Figures as plotly dictionaries: one code for every page that shows them."""
