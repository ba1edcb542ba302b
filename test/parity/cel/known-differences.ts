// Expressions whose answers differ from those of kube-apiserver's libraries, each with its reason.

export const knownDifferences: ReadonlyMap<string, string> = new Map([])
