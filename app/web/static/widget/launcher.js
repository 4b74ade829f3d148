// The launcher of the chat widget.
