"""The package under fire: killed, stopped and cut off agents, and what history then says."""
