"""kvfair's agents on the nodes of a Ray cluster. Nothing here imports Ray but `cluster`."""
