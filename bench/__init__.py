"""Speed and size, each beside a peer measured in the same minute."""
