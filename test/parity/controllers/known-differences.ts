// Rows in which the results of controllers differ from a real cluster's, by title, with the reason.
export const knownLoopDifferences: Readonly<Record<string, string>> = {
  'system namespaces cannot be deleted': 'objects that a logical cluster has from its creation have no managedFields',
}
