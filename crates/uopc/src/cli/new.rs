//! `uopc new` and `uopc kernels`: the kernel library, whose entries say what they can be asked for.

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches, Subcommand, value_parser};
use kernels::{Entry, KernelError, Kind, LIBRARY, Length, Settings};
use uop::BuildErrors;

use super::{Failure, print};

/// A kernel of the library and what it is asked for.
pub(crate) struct New {
    entry: &'static Entry,
    settings: Settings,
}

impl New {
    /// Prints the kernel.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let kernel = self.entry.build(&self.settings).map_err(|error| match error {
            // The places are in the library, which is not the user's.
            KernelError::Build(BuildErrors { errors }) => {
                Failure::several(errors.iter().map(|error| error.kind.to_string()))
            }
            error => error.into(),
        })?;
        print(&kernel.to_string())
    }
}

/// Prints what there is.
pub(crate) fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for Entry { name, about, example, .. } in LIBRARY {
        text += &format!("{name:14} {about}\n{:14} uopc new {name} {example}\n", "");
    }
    print(&(text + "\nuopc new KERNEL --help explains what a kernel can be asked for.\n"))
}

/// `N` or `LO..HI`.
fn length(text: &str) -> Result<Length, String> {
    let number = |text: &str| {
        text.parse().map_err(|_| format!("expected N or LO..HI, `{text}` is no integer"))
    };
    Ok(match text.split_once("..") {
        Some((lo, hi)) => Length::Between { lo: number(lo)?, hi: number(hi)? },
        None => Length::Fixed(number(text)?),
    })
}

impl Subcommand for New {
    fn augment_subcommands(command: Command) -> Command {
        let kernels = LIBRARY.iter().map(|entry| {
            let args = entry.settings.iter().map(|setting| {
                let arg = Arg::new(setting.name).long(setting.name).help(setting.about);
                match setting.kind {
                    Kind::Number(name) => {
                        let arg = arg.value_name(name).value_parser(value_parser!(i64));
                        arg.required(true).allow_negative_numbers(true)
                    }
                    Kind::Optional(name) => {
                        let arg = arg.value_name(name).value_parser(value_parser!(i64));
                        arg.allow_negative_numbers(true)
                    }
                    Kind::Lengths(name) => {
                        let arg = arg.value_name(name).value_delimiter(',').required(true);
                        arg.value_parser(length).allow_hyphen_values(true)
                    }
                    Kind::Choice(values) => {
                        arg.value_parser(values.to_vec()).default_value(values[0])
                    }
                    Kind::Switch => arg.action(ArgAction::SetTrue),
                }
            });
            let example = format!("Example:\n  uopc new {} {} > k.uop", entry.name, entry.example);
            Command::new(entry.name).about(entry.about).args(args).after_help(example)
        });
        command.subcommands(kernels).subcommand_required(true).arg_required_else_help(true)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        New::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        LIBRARY.iter().any(|entry| entry.name == name)
    }
}

impl FromArgMatches for New {
    fn from_arg_matches(matches: &ArgMatches) -> Result<New, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let entry = LIBRARY.iter().find(|entry| entry.name == name).ok_or_else(missing)?;
        let mut settings = Settings::default();
        for setting in entry.settings {
            let name = setting.name;
            match setting.kind {
                Kind::Number(_) | Kind::Optional(_) => {
                    if let Some(&value) = matches.get_one(name) {
                        settings.set_number(name, value);
                    }
                }
                Kind::Lengths(_) => {
                    let lengths = matches.get_many(name).unwrap_or_default();
                    settings.set_lengths(name, lengths.copied().collect());
                }
                Kind::Choice(_) => {
                    if let Some(value) = matches.get_one::<String>(name) {
                        settings.set_choice(name, value);
                    }
                }
                Kind::Switch if matches.get_flag(name) => settings.set_switch(name),
                Kind::Switch => {}
            }
        }
        Ok(New { entry, settings })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = New::from_arg_matches(matches)?;
        Ok(())
    }
}
