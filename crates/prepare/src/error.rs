//! What can be wrong. Texts are safe for whoever proposed or signed the bytes.

/// Why no request was prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The bytes are larger than allowed.
    #[error("{what} has {bytes} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Which bytes.
        what: &'static str,
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The bytes do not decode, or are not the one encoding of what they decode to.
    #[error("{0} is not in canonical encoding")]
    NotCanonical(&'static str),
    /// A definition that no action can be prepared with.
    #[error("{path}: {why}")]
    Invalid {
        /// Field path in the definition.
        path: String,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// The action names another tool.
    #[error("the action is for tool `{action}`, the definition is of `{definition}`")]
    WrongTool {
        /// The tool the action names.
        action: String,
        /// The tool of the definition.
        definition: String,
    },
    /// The action was proposed against another definition of the tool.
    #[error("the action was proposed against another definition of the tool; propose it again")]
    WrongDefinition,
    /// An argument that the template needs is absent.
    #[error("{pointer}: the argument is missing and the tool's request needs it")]
    Missing {
        /// JSON Pointer into the arguments.
        pointer: String,
    },
    /// A value that does not fit the place where the template puts it.
    #[error("{pointer}: {why}")]
    DoesNotFit {
        /// JSON Pointer into the arguments.
        pointer: String,
        /// Why, and what would fit.
        why: String,
    },
}

impl PrepareError {
    pub(crate) fn invalid(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { path: path.into(), why: why.into() }
    }

    /// The JSON Pointer into the arguments that the error is about.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Missing { pointer } | Self::DoesNotFit { pointer, .. } => Some(pointer),
            _ => None,
        }
    }
}

/// Why an action lies outside its tool's tenant scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {why}")]
pub struct ScopeError {
    /// JSON Pointer into the arguments.
    pub pointer: String,
    /// Why.
    pub why: String,
}
