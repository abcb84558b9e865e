//! The one error of the plane: a stable reason, whether a retry helps, what became of the effect, and its gRPC form.
