"""What ``onetool doctor`` looks at, one file a subject."""
