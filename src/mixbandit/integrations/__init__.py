"""mixbandit inside other tuners."""
