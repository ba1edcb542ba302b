// Where answers about CustomResourceDefinitions and their objects differ from a real server's, by title of the row, and why.
const withinTheWrite = 'names are accepted and the resource is established within the write, not by a controller later'
const noVersions = 'upstream tells a list of versions that is not there from an empty one'
const internalStruct = 'upstream shows a Go struct of its internal version as the value; ours shows what was sent'

export const knownDefinitionDifferences: Readonly<Record<string, string>> = {
  'definition: plain': withinTheWrite,
  'definition: a root with more than status allows': internalStruct,
  'definition: selectable fields of every kind':
    'upstream says "does not refer to a valid field" of metadata and of an empty step; ours says what is wrong with them',
  'definition: items of several kinds': 'ours complains a second time that the one schema is missing',
  'definition: spec missing': noVersions,
  'definition: versions null': noVersions,
  'definition: a reference': 'ours complains a second time that the type is missing',
}

export const knownObjectDifferences: Readonly<Record<string, string>> = {
  'object: an embedded resource':
    'upstream warns of unknown fields in embedded metadata last; ours in the order of paths',
}

export const knownLifeDifferences: Readonly<Record<string, string>> = {
  'definition: created, established, read, deleted': withinTheWrite,
  'definition: the strict group and its approval condition': withinTheWrite,
  'documents of a definition':
    'upstream shows properties that describe kind and apiVersion of embedded objects in its own words, and a store option',
  'subresources: scale':
    'upstream cannot name the type Scale in its message about a body that is none, and shows its storage key in another',
}
