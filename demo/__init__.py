"""Two tasks on a small folder of ours, or a workflow with mistakes that the loop mends."""
