//! Output files that are complete or not there: written beside their place and renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};

use tempfile::NamedTempFile;

use super::{Failure, shown};

/// A place that can be written to, before anything is.
pub(crate) struct Output {
    /// What messages call it.
    name: String,
    /// Absolute, without links.
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
    /// Makes sure that `path` can be written, and is not the kernel's own file.
    pub(crate) fn create(path: &Path, kernel: &Path) -> Result<Output, Failure> {
        let name = shown(path);
        let open = || {
            let path = resolve(path)?;
            let stdin = kernel == Path::new("-");
            if !stdin && fs::canonicalize(kernel).is_ok_and(|kernel| kernel == path) {
                return Err(io::Error::other("it would overwrite the kernel"));
            }
            let name = name.clone();
            match fs::metadata(&path) {
                Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
                Ok(there) if !there.is_file() => {
                    let file = OpenOptions::new().write(true).open(&path)?;
                    Ok(Output { name, path, target: Target::Open(file) })
                }
                there => {
                    if there.is_ok() {
                        OpenOptions::new().write(true).open(&path)?;
                    }
                    let folder = path.parent().unwrap_or(&path);
                    let mut builder = tempfile::Builder::new();
                    builder.prefix(".uopc-");
                    #[cfg(unix)]
                    {
                        use std::os::unix::fs::PermissionsExt;
                        // What a new file gets; the umask takes its part.
                        let mode = there.map_or(0o666, |there| there.permissions().mode() & 0o777);
                        builder.permissions(fs::Permissions::from_mode(mode));
                    }
                    // Its errors speak of the name of the new file.
                    let file = builder.tempfile_in(folder).map_err(|error| error.kind())?;
                    Ok(Output { name, path, target: Target::Beside(file) })
                }
            }
        };
        open().map_err(|error: io::Error| cannot_write(&name, &error))
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
        let Output { name, path, target } = self;
        let done = match target {
            Target::Open(mut file) => write(&mut file),
            Target::Beside(mut file) => write(file.as_file_mut())
                .and_then(|()| file.persist(&path).map(|_| ()).map_err(|error| error.error)),
        };
        done.map_err(|error| cannot_write(&name, &error))
    }
}

/// The one path of the file that `path` names, whether or not it is there. A link stays a link: what
/// it points to is meant.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(io::Error::other("it is a link to a file that does not exist"));
            }
            let is_folder = path.as_os_str().to_string_lossy().ends_with(MAIN_SEPARATOR_STR);
            let name = path.file_name().filter(|_| !is_folder).ok_or(error)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(fs::canonicalize(folder.unwrap_or(Path::new(".")))?.join(name))
        }
        resolved => resolved,
    }
}

fn cannot_write(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {name}: {error}"))
}
