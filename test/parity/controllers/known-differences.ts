// Rows in which the results of controllers differ from a real cluster's, by title, with the reason.
export const knownLoopDifferences: Readonly<Record<string, string>> = {
  'some namespaces stay': 'nobody owns what a logical cluster is born with',
}
