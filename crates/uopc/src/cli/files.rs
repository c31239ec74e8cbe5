//! Output files that are complete or not there: written beside their place and renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Failure;

/// A place that can be written to, before anything is.
pub(crate) struct Output {
    path: PathBuf,
    target: Target,
}

enum Target {
    /// A new file beside the place.
    Beside(NamedTempFile),
    /// What is there is no regular file (a pipe, a device) and stays.
    Open(File),
}

impl Output {
    /// Makes sure that `path` can be written.
    pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
        let open = || {
            // A link stays a link: what it points to is replaced.
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            match fs::metadata(&path) {
                Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
                Ok(there) if !there.is_file() => {
                    let file = OpenOptions::new().write(true).open(&path)?;
                    Ok(Output { path, target: Target::Open(file) })
                }
                there => {
                    if there.is_ok() {
                        OpenOptions::new().write(true).open(&path)?;
                    }
                    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                    let mut builder = tempfile::Builder::new();
                    builder.prefix(".uopc-");
                    #[cfg(unix)]
                    {
                        use std::os::unix::fs::PermissionsExt;
                        // What a new file gets; the umask takes its part.
                        let mode = there.map_or(0o666, |there| there.permissions().mode() & 0o777);
                        builder.permissions(fs::Permissions::from_mode(mode));
                    }
                    let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
                    Ok(Output { path, target: Target::Beside(file) })
                }
            }
        };
        open().map_err(|error: io::Error| cannot_write(path, &error))
    }

    /// Whether both are one regular file.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        matches!(self.target, Target::Beside(_)) && self.path == other.path
    }

    /// Writes everything and puts it in place.
    pub(crate) fn write(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Output { path, target } = self;
        let done = match target {
            Target::Open(mut file) => write(&mut file),
            Target::Beside(mut file) => write(file.as_file_mut())
                .and_then(|()| file.persist(&path).map(|_| ()).map_err(|error| error.error)),
        };
        done.map_err(|error| cannot_write(&path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure(format!("cannot write {}: {error}", path.display()))
}
