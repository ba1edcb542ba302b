// Rows about admission policies that differ from a real server, by title, with the reason.
export const knownPolicyDifferences: Readonly<Record<string, string>> = {}
