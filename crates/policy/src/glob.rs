//! Globs: `*` for any run, `\` before a `*` or `\` that is meant as it is. Matched without
//! backtracking. Knows neither tools nor rules.

/// Longest glob, bytes.
const MAX_GLOB: usize = 1024;
/// Longest text that a glob is tried on, bytes; longer text cannot be decided.
pub(crate) const MAX_TEXT: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `*` before the end.
    Run,
    /// `**`, and `*` at the end.
    Rest,
}

/// A compiled glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    tokens: Vec<Token>,
    form: Form,
}

/// Forms that need no search.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Exact(String),
    /// Text, then any rest.
    Begins(String),
    /// Any run, then text; for wide reach.
    Ends(String),
    Other,
}

impl Form {
    fn of(tokens: &[Token]) -> Self {
        let text = |tokens: &[Token]| tokens.iter().map(fixed).collect::<Option<String>>();
        let form = match tokens {
            [Token::Run | Token::Rest, end @ ..] if !end.is_empty() => text(end).map(Self::Ends),
            [begin @ .., Token::Rest] => text(begin).map(Self::Begins),
            all => text(all).map(Self::Exact),
        };
        form.unwrap_or(Self::Other)
    }
}

/// How far `*` reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Over anything: for rules that deny or ask.
    Wide,
    /// `*` before the end not over what separates the parts of a URL or path, and no `..`
    /// segment anywhere: for rules that approve.
    Narrow,
}

impl Glob {
    /// Compiles a glob.
    ///
    /// # Errors
    /// Says what to write instead.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > MAX_GLOB {
            return Err(format!("a pattern has at most {MAX_GLOB} bytes"));
        }
        let mut tokens = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(next @ ('*' | '\\')) => tokens.push(Token::Char(next)),
                    _ => return Err("`\\` stands before `*` or `\\` only; write `\\\\` for one".to_owned()),
                },
                '*' => {
                    let double = chars.next_if_eq(&'*').is_some();
                    if chars.peek() == Some(&'*') {
                        return Err("more than two `*` in a row mean nothing".to_owned());
                    }
                    tokens.push(if double || chars.peek().is_none() { Token::Rest } else { Token::Run });
                }
                other => tokens.push(Token::Char(other)),
            }
        }
        Ok(Self { form: Form::of(&tokens), tokens })
    }

    /// The glob that matches everything.
    pub(crate) fn any() -> Self {
        Self { tokens: vec![Token::Rest], form: Form::Begins(String::new()) }
    }

    /// Whether the text holds a wildcard or an escape, and so is a glob at all.
    pub(crate) fn is_glob(text: &str) -> bool {
        text.contains(['*', '\\'])
    }

    /// Whether the whole text matches. The caller bounds the text by [`MAX_TEXT`].
    pub(crate) fn matches(&self, text: &str, reach: Reach) -> bool {
        if let Form::Exact(exact) = &self.form {
            return exact == text;
        }
        if reach == Reach::Narrow && text.split(['/', '\\']).any(|part| part == "..") {
            return false;
        }
        match (&self.form, reach) {
            (Form::Begins(begin), _) => return text.starts_with(begin.as_str()),
            (Form::Ends(end), Reach::Wide) => return text.ends_with(end.as_str()),
            _ => {}
        }
        // Position i is alive when the first i tokens can match what was read so far.
        let mut alive = vec![false; self.tokens.len() + 1];
        if let Some(first) = alive.first_mut() {
            *first = true;
        }
        self.skip_runs(&mut alive);
        for c in text.chars() {
            let mut next = vec![false; alive.len()];
            let mut any = false;
            for (at, token) in self.tokens.iter().enumerate() {
                if !alive.get(at).copied().unwrap_or(false) {
                    continue;
                }
                let to = match token {
                    Token::Char(wanted) if *wanted == c => at + 1,
                    Token::Rest => at,
                    Token::Run if reach == Reach::Wide || within_part(c) => at,
                    _ => continue,
                };
                if let Some(slot) = next.get_mut(to) {
                    *slot = true;
                    any = true;
                }
            }
            if !any {
                return false;
            }
            self.skip_runs(&mut next);
            alive = next;
        }
        alive.last().copied().unwrap_or(false)
    }

    /// A run may match nothing.
    fn skip_runs(&self, alive: &mut [bool]) {
        for (at, token) in self.tokens.iter().enumerate() {
            if matches!(token, Token::Run | Token::Rest)
                && alive.get(at).copied().unwrap_or(false)
                && let Some(slot) = alive.get_mut(at + 1)
            {
                *slot = true;
            }
        }
    }

    /// Whether it surely matches all that another does.
    pub(crate) fn covers(&self, other: &Self, reach: Reach) -> bool {
        match (&self.form, &other.form) {
            _ if self == other => true,
            (_, Form::Exact(text)) => self.matches(text, reach),
            (Form::Begins(begin), _) => other.prefix().starts_with(begin.as_str()),
            (Form::Ends(end), _) if reach == Reach::Wide => other.suffix().ends_with(end.as_str()),
            _ => false,
        }
    }

    /// The fixed text before the first wildcard.
    pub(crate) fn prefix(&self) -> String {
        self.tokens.iter().map_while(fixed).collect()
    }

    /// The fixed text after the last wildcard.
    pub(crate) fn suffix(&self) -> String {
        let back: Vec<char> = self.tokens.iter().rev().map_while(fixed).collect();
        back.into_iter().rev().collect()
    }

    /// Whether no wildcard is in it.
    pub(crate) fn is_exact(&self) -> bool {
        self.tokens.iter().all(|t| matches!(t, Token::Char(_)))
    }
}

const fn fixed(token: &Token) -> Option<char> {
    match token {
        Token::Char(c) => Some(*c),
        Token::Run | Token::Rest => None,
    }
}

/// Characters that never separate the parts of a URL or path, in any reading of it.
fn within_part(c: char) -> bool {
    c.is_alphanumeric() || (c.is_ascii_graphic() && !matches!(c, '/' | '\\' | '?' | '#' | '@' | '%'))
}
