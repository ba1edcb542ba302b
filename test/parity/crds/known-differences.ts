// Rows about CustomResourceDefinitions and their objects that differ from a real server, by title, with the reason.
const withinTheWrite = 'names are accepted and the resource is established within the write, not by a controller later'
const noVersions = 'upstream distinguishes a missing list of versions from an empty one'
const internalStruct = 'upstream shows a Go struct of its internal version as the value; ours shows what was sent'

export const knownDefinitionDifferences: Readonly<Record<string, string>> = {
  'definition: plain': withinTheWrite,
  'definition: a root with more than status allows': internalStruct,
  'definition: selectable fields of every kind':
    'upstream says "does not refer to a valid field" of metadata and of an empty step; ours gives the specific error',
  'definition: a list of item schemas': 'ours also reports that the one schema is missing',
  'definition: spec missing': noVersions,
  'definition: versions null': noVersions,
  'definition: a reference': 'ours also reports that the type is missing',
}

export const knownObjectDifferences: Readonly<Record<string, string>> = {
  'object: an embedded resource':
    'upstream warns of unknown fields in embedded metadata last; ours in the order of paths',
}

export const knownLifeDifferences: Readonly<Record<string, string>> = {
  'definition: created, established, read, deleted': withinTheWrite,
  'definition: the strict group and its approval condition': withinTheWrite,
  'documents of a definition':
    'upstream adds descriptions of kind and apiVersion of embedded objects, and a store option',
  'subresources: scale': 'upstream does not name the type Scale in one message, and shows its storage key in another',
}

export const knownRuleDifferences: Readonly<Record<string, string>> = {}
