"""How often a certificate says something false, and how often silently."""
