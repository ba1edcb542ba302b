// Where what controllers do differs from a real cluster, by title of the row, and why.
export const knownLoopDifferences: Readonly<Record<string, string>> = {}
