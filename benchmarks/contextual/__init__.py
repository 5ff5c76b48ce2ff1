"""What contextual bandits earn: ours beside other libraries and ten lines of numpy, on tables and in simulators."""
