//! Pieces of C and HIP that are longer than a line, from a file.

/// The section `name` of `sections.c.in`, with each of `words` replaced by what is beside it.
pub(crate) fn section(name: &str, words: &[(&str, &str)]) -> String {
    let mut sections = include_str!("sections.c.in").split("\n@ ");
    let section = sections.find_map(|section| section.strip_prefix(name)?.strip_prefix('\n'));
    let section = section.unwrap_or_else(|| unreachable!("the file has a section {name}"));
    let lines = section.lines().filter(|line| !line.starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n";
    words.iter().fold(text, |text, (word, value)| text.replace(word, value))
}
