//! Files: operations on paths, and `File`.

#[cfg(feature = "sim")]
mod fs;
#[cfg(feature = "sim")]
mod fs_file;
