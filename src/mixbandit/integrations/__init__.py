"""mixbandit inside the tuners that people use already."""
