//! Writes values as the text of a file.
