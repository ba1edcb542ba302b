// Rows that answer differently on purpose, with the reason.

export const knownWebhookDifferences: Readonly<Record<string, string>> = {}
