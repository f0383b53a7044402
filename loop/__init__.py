"""The outer Plan & Execute loop: drafts a workflow, runs it, mends it by typed edits."""
