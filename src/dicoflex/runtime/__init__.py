"""What runs underneath: threads, random numbers, progress, whole files."""
