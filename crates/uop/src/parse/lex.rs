//! The tokens of a line, and the words and numbers in them.

use smallvec::SmallVec;

use crate::dtype::{Const, DType};
use crate::verify::is_identifier;

/// An error on a line that is known from the context.
pub(super) struct Fault {
    pub(super) column: usize,
    pub(super) length: usize,
    pub(super) message: String,
}

/// A piece of a line.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) raw: &'a str,
    pub(super) column: usize,
    pub(super) length: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    /// `%name`, without the sign.
    Name(&'a str),
    /// `@name`, without the sign.
    At(&'a str),
    /// A run of letters, digits and `_`, `.`, `+`, `-`.
    Word(&'a str),
    /// A text in double quotes, without them.
    Quoted(String),
    /// One of `[`, `]`, `,` and `=`.
    Mark,
    /// No token of the text form; why not.
    Wrong(String),
    /// The end of the line, or a comment.
    End,
}

impl<'a> Token<'a> {
    /// The parts of a word before and after its first or last dot.
    pub(super) fn split(&self, dot: Option<usize>) -> (Token<'a>, Option<Token<'a>>) {
        let part = |from: usize, to: usize| Token {
            kind: Kind::Word(&self.raw[from..to]),
            raw: &self.raw[from..to],
            column: self.column + from,
            length: to - from,
        };
        let end = self.raw.len();
        match dot {
            Some(dot) => (part(0, dot), Some(part(dot + 1, end))),
            None => (part(0, end), None),
        }
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { column: self.column, length: self.length, message: message.into() }
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(self.fault(message))
    }
}

/// The tokens of one line, with one of lookahead.
pub(super) struct Cursor<'a> {
    pub(super) token: Token<'a>,
    /// What follows the token, and the column at which it starts.
    pub(super) rest: &'a str,
    pub(super) column: usize,
    /// The column behind the token before.
    pub(super) end: usize,
    /// What would have been right instead of the token, as far as it was tried.
    pub(super) tried: SmallVec<[&'static str; 4]>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a str) -> Cursor<'a> {
        let token = Token { kind: Kind::End, raw: "", column: 1, length: 0 };
        let mut cursor = Cursor {
            token,
            rest: line.strip_suffix('\r').unwrap_or(line),
            column: 1,
            end: 1,
            tried: SmallVec::new(),
        };
        cursor.advance();
        cursor
    }

    /// Moves on by one token and returns the one before.
    pub(super) fn advance(&mut self) -> Token<'a> {
        self.end = self.token.column + self.token.length;
        self.tried.clear();
        let blanks = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.rest = &self.rest[blanks..];
        self.column += blanks;
        let (kind, bytes) = lex(self.rest);
        let (raw, rest) = self.rest.split_at(bytes);
        let length = raw.chars().count();
        let column = match kind {
            // The caret for what is missing belongs right behind what is there.
            Kind::End => self.end,
            _ => self.column,
        };
        self.rest = rest;
        self.column += length;
        let token = Token { kind, raw, column, length };
        std::mem::replace(&mut self.token, token)
    }

    pub(super) fn is_end(&self) -> bool {
        matches!(self.token.kind, Kind::End)
    }

    /// Takes the word or mark `text`, if it is next.
    pub(super) fn eat(&mut self, text: &'static str) -> bool {
        let found = self.token.raw == text;
        if found {
            self.advance();
        } else {
            self.tried.push(text);
        }
        found
    }

    /// Takes the word or mark `text`.
    pub(super) fn expect(&mut self, text: &'static str) -> Result<(), Fault> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.is_end() { Ok(()) } else { Err(self.wanted("the end of the line")) }
    }

    /// Takes a word, whatever it is.
    pub(super) fn any_word(&mut self, what: &'static str) -> Result<Token<'a>, Fault> {
        match self.token.kind {
            Kind::Word(_) => Ok(self.advance()),
            _ => Err(self.wanted(what)),
        }
    }

    /// Takes a number that tells things apart: a slot, an axis, a buffer.
    pub(super) fn number(&mut self) -> Result<u32, Fault> {
        let number = match self.token.kind {
            Kind::Word(word) if is_digits(word) => word.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.expected("a number from 0 to 4294967295"))?;
        self.advance();
        Ok(number)
    }

    /// Takes one or more items with commas between them.
    pub(super) fn commas(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        item(self)?;
        while self.eat(",") {
            item(self)?;
        }
        Ok(())
    }

    /// Takes items in brackets, or none.
    pub(super) fn list(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect("[")?;
        if !self.eat("]") {
            self.commas(item)?;
            self.expect("]")?;
        }
        Ok(())
    }

    /// Takes a text in double quotes.
    pub(super) fn quoted(&mut self) -> Result<Box<str>, Fault> {
        match &self.token.kind {
            Kind::Quoted(text) => {
                let text = text.as_str().into();
                self.advance();
                Ok(text)
            }
            _ => Err(self.wanted("a name in double quotes")),
        }
    }

    /// The error that the token is not `what`.
    pub(super) fn expected(&self, what: &str) -> Fault {
        let found = match &self.token.kind {
            Kind::Wrong(why) => return self.token.fault(why),
            Kind::End => "the end of the line".to_string(),
            _ => shown(self.token.raw),
        };
        self.token.fault(format!("expected {what}, found {found}"))
    }

    /// The error that the token is neither `what` nor anything else that was tried.
    pub(super) fn wanted(&mut self, what: &'static str) -> Fault {
        self.tried.push(what);
        self.unexpected()
    }

    /// The error that the token is nothing of what was tried: words and marks as they are written,
    /// and descriptions, which have a blank in them.
    pub(super) fn unexpected(&self) -> Fault {
        let quoted = |t: &&str| {
            if t.contains(' ') { t.to_string() } else { format!("`{t}`") }
        };
        let what: Vec<String> = self.tried.iter().map(quoted).collect();
        self.expected(&either(&what))
    }
}

/// The token at the front of `rest`, which does not start with a blank, and its length in bytes.
pub(super) fn lex(rest: &str) -> (Kind<'_>, usize) {
    let Some(first) = rest.chars().next() else {
        return (Kind::End, 0);
    };
    match first {
        ';' => (Kind::End, 0),
        '[' | ']' | ',' | '=' => (Kind::Mark, 1),
        '"' => lex_quoted(rest),
        '%' | '@' => {
            let name = &rest[1..1 + word_length(&rest[1..])];
            let what = match first {
                '%' => "a name, `%` and a number or an identifier",
                _ => "an operation, `@` and an identifier",
            };
            let kind = match first {
                '%' if is_digits(name) || is_identifier(name) => Kind::Name(name),
                '@' if is_identifier(name) => Kind::At(name),
                _ => Kind::Wrong(format!("expected {what}, found {}", shown(&rest[..=name.len()]))),
            };
            (kind, 1 + name.len())
        }
        _ => match word_length(rest) {
            0 => {
                let why = format!("unexpected character `{}`", first.escape_debug());
                (Kind::Wrong(why), first.len_utf8())
            }
            length => (Kind::Word(&rest[..length]), length),
        },
    }
}

pub(super) fn word_length(rest: &str) -> usize {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'+' | b'-');
    rest.bytes().take_while(|b| is_part(*b)).count()
}

pub(super) fn lex_quoted(rest: &str) -> (Kind<'_>, usize) {
    let mut text = String::new();
    let mut wrong = None;
    let mut chars = rest.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => {
                let kind = wrong.map_or(Kind::Quoted(text), Kind::Wrong);
                return (kind, i + 1);
            }
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => text.push(c),
                Some((_, c)) => {
                    let c = c.escape_debug();
                    wrong = Some(format!("unknown escape `\\{c}`, expected `\\\"` or `\\\\`"));
                }
                None => break,
            },
            c if c.is_control() => {
                wrong = Some(format!("a name holds the control character `{}`", c.escape_debug()));
            }
            c => text.push(c),
        }
    }
    let why = "expected `\"` at the end of the name, found the end of the line";
    (Kind::Wrong(why.into()), rest.len())
}

/// A piece of text for a message, cut where it is very long.
pub(super) fn shown(raw: &str) -> String {
    const LONGEST: usize = 40;
    match raw.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &raw[..end]),
        None => format!("`{raw}`"),
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

/// The message for a word that is none of `known`, with those that look most like it.
pub(super) fn unknown(what: &str, word: &str, known: &[String]) -> String {
    let message = format!("unknown {what} {}", shown(word));
    let distances: Vec<usize> = known.iter().map(|k| distance(word, k)).collect();
    let best = distances.iter().copied().min().unwrap_or(usize::MAX);
    let quoted = |k: &String| format!("`{k}`");
    if best <= 1 + word.len() / 4 {
        let near = known.iter().zip(distances).filter(|(_, d)| *d == best);
        let near: Vec<String> = near.map(|(k, _)| quoted(k)).take(3).collect();
        format!("{message}, did you mean {}?", either(&near))
    } else if known.len() <= 8 {
        let known: Vec<String> = known.iter().map(quoted).collect();
        format!("{message}, expected {}", either(&known))
    } else {
        format!("{message}, docs/ir.md lists all")
    }
}

/// How many insertions, removals, changes and swaps of neighbours lead from `a` to `b` (optimal
/// string alignment). No word of the text form is long, so a long one is far from all of them.
pub(super) fn distance(a: &str, b: &str) -> usize {
    if a.len() > 32 {
        return usize::MAX;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// What is called `token` among `known`, as those are displayed.
pub(super) fn named<T: ToString + Clone>(
    what: &str,
    token: &Token<'_>,
    known: &[T],
) -> Result<T, Fault> {
    let unknown = || {
        let names: Vec<String> = known.iter().map(T::to_string).collect();
        token.fault(unknown(what, token.raw, &names))
    };
    known.iter().find(|known| known.to_string() == token.raw).cloned().ok_or_else(unknown)
}

/// Whether `word` is written as an integer.
pub(super) fn is_integer(word: &str) -> bool {
    is_digits(word.strip_prefix('-').unwrap_or(word))
}

fn is_digits(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

pub(super) fn integer(word: &str) -> Result<i128, String> {
    if !is_integer(word) {
        return Err(format!("expected an integer, found {}", shown(word)));
    }
    word.parse().map_err(|_| format!("the integer {} does not fit 128 bits", shown(word)))
}

/// The constant of `dtype` that is written as `word`.
pub(super) fn constant(word: &str, dtype: DType) -> Result<Const, String> {
    let found = shown(word);
    match dtype {
        DType::Void => Err("`void` has no constants".into()),
        DType::Bool => match word {
            "true" => Ok(Const::Bool(true)),
            "false" => Ok(Const::Bool(false)),
            _ => Err(format!("expected `true` or `false`, found {found}")),
        },
        _ if dtype.is_int() => {
            let value = Const::Int(integer(word)?);
            match dtype.int_range() {
                Some((lo, hi)) if !value.fits(dtype) => {
                    Err(format!("{found} does not fit `{dtype}`, which is {lo} to {hi}"))
                }
                _ => Ok(value),
            }
        }
        _ => float(word, dtype),
    }
}

/// The float of `dtype` that is written as `word`: its bits, an infinity or a decimal.
pub(super) fn float(word: &str, dtype: DType) -> Result<Const, String> {
    let found = shown(word);
    let width = 2 * dtype.size().unwrap_or(0);
    let quiet = Const::float(dtype, f64::NAN).map_or(String::new(), |nan| nan.to_string());
    if let Some(digits) = word.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        let value = bits.filter(|_| digits.len() == width).map(|b| Const::float_bits(dtype, b));
        return value.flatten().ok_or_else(|| {
            format!("expected the bits of an `{dtype}`, `0x` and {width} hexadecimal digits, found {found}")
        });
    }
    // The standard parser also takes `nan`, `infinity` and a leading `.` or `+`. An f32 is rounded
    // once; 16 bits by way of an f64.
    let digits = word.strip_prefix('-').unwrap_or(word);
    let decimal = digits.starts_with(|c: char| c.is_ascii_digit());
    let value = match dtype {
        DType::F32 => word.parse().ok().map(|value: f32| Const::from(value)),
        _ => word.parse().ok().and_then(|value| Const::float(dtype, value)),
    };
    match value.filter(|_| decimal || digits == "inf") {
        Some(value) if decimal && value.as_float().is_some_and(f64::is_infinite) => {
            Err(format!("{found} does not fit `{dtype}`, write `inf` or `-inf`"))
        }
        Some(value) => Ok(value),
        None if word.to_ascii_lowercase().ends_with("nan") => Err(format!(
            "expected a decimal, found {found}; write a NaN by its bits, such as `{quiet}`"
        )),
        None => Err(format!(
            "expected a decimal, `inf`, `-inf` or the bits `0x…` of an `{dtype}`, found {found}"
        )),
    }
}
