// Rows in which quotas differ from a real cluster's, by title, with the reason.
export const knownQuotaDifferences: Readonly<Record<string, string>> = {}
