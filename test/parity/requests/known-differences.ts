// Rows in which our answer differs from a real server's, by `topic: title of the row`, with the reason.
const why = {
  clientMistake: 'a real server answers 500 to a mistake of the client; ours answers 400 or 409',
  compacted: 'revision 1 is before the logical cluster; a real server still has it',
  paged: 'a real server reads from its cache here and ignores the limit; ours applies it',
  looksAhead: 'ours knows that nothing more matches, and returns no continue token',
  tokenWords: 'our message about a malformed token is shorter',
  jobWords: 'upstream has another message for Jobs only',
  keyOfEtcd: "upstream's message contains its key in etcd",
  managedFields: 'upstream writes a new revision for managedFields only, which are not kept here',
  fieldsShown: 'upstream returns the managedFields that it added to a review',
  wholeStatus: 'upstream validates the rest of the object as well',
  patchOfKind: 'the message depends on how far the decoder of upstream got',
  lenientType: 'media types are case-insensitive here, and wildcard subtypes are accepted',
  dryRunMeant: 'a dry run in the query is honoured here even if there is a body',
  dryRunRevision: 'upstream returns the revision of a write that never happened',
  emptyField: 'upstream takes an empty selector as one that matches everything',
  metadataList: 'ours sends the events as metadata; upstream ends the stream without an error',
  protobuf: 'PartialObjectMetadata, discovery and custom resources are not written as protobuf here',
  hungUp: 'a real server closes the connection',
  formOfError: 'ours encodes the error in the requested media type',
  emptyList: 'an empty list is [] here, and null upstream',
  decoderWords: "upstream returns the messages of Go's decoders",
  scaleOfText: 'upstream reports the same text twice',
  openapi: 'only served APIs have a document, and the message for other paths differs',
  emptySegment: 'an empty path segment is not a namespace here',
  tableSize: 'a table is compressed by the size of its objects here',
  frames: 'the frames contain uids and revisions, and upstream managedFields',
  noTime: 'a real server ends a watch with a negative timeout at once',
  etagOfDiscovery: 'ours parses If-None-Match as HTTP requires; upstream compares the whole header',
  openapiIndex: 'the index has an ETag and a content type here',
  whyNot: 'our message lists the available types',
  openPaths: 'health and version need no binding here, and the rules come in another order',
  credential: 'ours does not name the certificate',
  dots: 'ours refuses paths with dots',
  slash: 'ours ignores a slash at the end of a path',
  httpText: "upstream returns the messages of Go's HTTP server",
  dryRevision: 'upstream returns the revision that was sent with a dry run; ours returns none',
  laterTwice: 'upstream validates duplicates of patched custom resources in a later step, and reports them as well',
  watchAlone: 'a real server answers 500; ours has no resource of this name',
} as const

export const knownDifferences: Readonly<Record<string, string>> = {
  'lists: GET /api/v1/namespaces/{ns}/configmaps/a?resourceVersion=abc': why.clientMistake,
  'lists: GET /api/v1/namespaces/{ns}/configmaps/a?resourceVersion=-1': why.clientMistake,
  'lists: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app&resourceVersion=1&resourceVersionMatch=Exact':
    why.compacted,
  'lists: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app&resourceVersion=0&limit=1': why.paged,
  'lists: next page: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app&limit=2&continue=<<selected.metadata.continue>>':
    why.looksAhead,
  'lists: GET /api/v1/namespaces/{ns}/configmaps?limit=2&continue=garbage': why.tokenWords,
  'lists: GET /api/v1/namespaces/{ns}/configmaps?limit=2&continue=%21%21%21': why.tokenWords,
  'lists: GET /api/v1/namespaces/{ns}/configmaps?limit=2&continue=<<page1.metadata.continue>>&resourceVersion=0':
    why.paged,
  'lists: status.succeeded=0: GET /apis/batch/v1/namespaces/{ns}/jobs?fieldSelector=status.succeeded%3D0': why.jobWords,
  'updates: a garbage revision: PUT /api/v1/namespaces/{ns}/configmaps/a': why.clientMistake,
  'updates: a negative revision: PUT /api/v1/namespaces/{ns}/configmaps/a': why.clientMistake,
  'updates: another uid: PUT /api/v1/namespaces/{ns}/configmaps/a': why.keyOfEtcd,
  'updates: absent, with a uid: PUT /apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l3': why.keyOfEtcd,
  'updates: a garbage revision: PUT /apis/updates.parity.example.com/v1/namespaces/{ns}/updateswidgets/w':
    why.clientMistake,
  'updates: another uid: PUT /apis/updates.parity.example.com/v1/namespaces/{ns}/updateswidgets/w': why.keyOfEtcd,
  'updates: a bad status: PUT /apis/updates.parity.example.com/v1/namespaces/{ns}/updateswidgets/w/status':
    why.wholeStatus,
  'updates: no kind: PUT /apis/updates.parity.example.com/v1/namespaces/{ns}/updateswidgets/w/scale': why.managedFields,
  'updates: GET /apis/updates.parity.example.com/v1/namespaces/{ns}/updateswidgets/w': why.managedFields,
  'patches: a garbage revision, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.clientMistake,
  'patches: the kind, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.patchOfKind,
  'patches: the version, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.patchOfKind,
  'patches: a garbage revision, merge: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.clientMistake,
  'patches: the kind, merge: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.patchOfKind,
  'patches: the version, merge: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.patchOfKind,
  'patches: a garbage revision, strategic: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.clientMistake,
  'patches: PATCH /api/v1/namespaces/{ns}/configmaps/a (5)': why.lenientType,
  'patches: add to an absent path, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: a test that fails, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: a test of an absent path, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: a test of the revision, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: move from an absent path, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: an unknown operation, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: no operation, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: no path, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: a string for the document, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: a finalizer beyond the end, json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'patches: a container without its name, strategic: PATCH /apis/apps/v1/namespaces/{ns}/replicasets/d':
    why.clientMistake,
  'patches: element order without an item, strategic: PATCH /apis/apps/v1/namespaces/{ns}/replicasets/d':
    why.clientMistake,
  'patches: merge an object, strategic: PATCH /apis/apps/v1/namespaces/{ns}/replicasets/d': why.clientMistake,
  'patches: an unknown directive, strategic: PATCH /apis/apps/v1/namespaces/{ns}/replicasets/d': why.clientMistake,
  'patches: a directive that is not a string, strategic: PATCH /apis/apps/v1/namespaces/{ns}/replicasets/d':
    why.clientMistake,
  'deletes: another kind: DELETE /api/v1/namespaces/{ns}/configmaps/d7': why.clientMistake,
  'deletes: garbage: DELETE /api/v1/namespaces/{ns}/configmaps/d9': why.clientMistake,
  'deletes: a list: DELETE /api/v1/namespaces/{ns}/configmaps/d10': why.clientMistake,
  'deletes: preconditions as text: DELETE /api/v1/namespaces/{ns}/configmaps/d20': why.clientMistake,
  'deletes: orphanDependents as text: DELETE /api/v1/namespaces/{ns}/configmaps/d25': why.clientMistake,
  'deletes: grace as text: DELETE /api/v1/namespaces/{ns}/configmaps/d30': why.clientMistake,
  'deletes: dry run as text: DELETE /api/v1/namespaces/{ns}/configmaps/d33': why.clientMistake,
  'deletes: after dry run by query beside a body: GET /api/v1/namespaces/{ns}/configmaps/d43': why.dryRunMeant,
  'deletes: DELETE /api/v1/namespaces/{ns}/configmaps/fore2?dryRun=All': why.dryRunRevision,
  'deletes: DELETE /api/v1/namespaces/{ns}/configmaps/orphan2?dryRun=All': why.dryRunRevision,
  'deletes: DELETE /api/v1/namespaces/{ns}/configmaps/orphan2?dryRun=All&propagationPolicy=Orphan': why.dryRunRevision,
  'deletes: DELETE /api/v1/namespaces/{ns}/configmaps/orphan2?dryRun=All&orphanDependents=true': why.dryRunRevision,
  'deletes: garbage: DELETE /api/v1/namespaces/{ns}/configmaps?labelSelector=set': why.clientMistake,
  'deletes: DELETE /api/v1/namespaces/{ns}/configmaps?labelSelector=set&continue=garbage': why.tokenWords,
  'watches: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=w&timeoutSeconds=1&watch=true&resourceVersion=abc':
    why.clientMistake,
  'watches: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=w&timeoutSeconds=1&watch=true&resourceVersion=-1':
    why.clientMistake,
  'watches: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=w&timeoutSeconds=1&watch=true&fieldSelector=%3D':
    why.emptyField,
  'watches: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=w&timeoutSeconds=1&watch=true as application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io':
    why.metadataList,
  'compression: a large list as a small table: GET /api/v1/namespaces/{ns}/configmaps as application/json;as=Table;v=v1;g=meta.k8s.io':
    why.tableSize,
  'watches: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=w&timeoutSeconds=1&watch=true as application/vnd.kubernetes.protobuf;stream=watch,application/json':
    why.frames,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app as application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json':
    why.formOfError,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps/a as APPLICATION/JSON': why.lenientType,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps/a as application/*': why.lenientType,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app as APPLICATION/JSON': why.lenientType,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app as application/*': why.lenientType,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app as application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io':
    why.formOfError,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=nothing as application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io':
    why.emptyList,
  'negotiation: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=app&limit=1&continue=<<page.metadata.continue>> as application/json;as=Table;v=v1;g=meta.k8s.io':
    why.looksAhead,
  'negotiation: broken y4: POST /api/v1/namespaces/{ns}/configmaps': why.decoderWords,
  'negotiation: JSON as p1: POST /api/v1/namespaces/{ns}/configmaps': why.decoderWords,
  'negotiation: only the magic bytes p2: POST /api/v1/namespaces/{ns}/configmaps': why.decoderWords,
  'negotiation: no UTF-8: POST /api/v1/namespaces/{ns}/configmaps': why.decoderWords,
  'negotiation: GET /apis/negotiation.parity.example.com/v1/namespaces/{ns}/negotiationwidgets/w as application/vnd.kubernetes.protobuf':
    why.protobuf,
  'negotiation: GET /apis/negotiation.parity.example.com/v1/namespaces/{ns}/negotiationwidgets/w as application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1':
    why.protobuf,
  'negotiation: GET /apis/negotiation.parity.example.com/v1/namespaces/{ns}/negotiationwidgets as application/vnd.kubernetes.protobuf':
    why.protobuf,
  'negotiation: a widget: POST /apis/negotiation.parity.example.com/v1/namespaces/{ns}/negotiationwidgets': why.hungUp,
  'negotiation: a widget without a kind: POST /apis/negotiation.parity.example.com/v1/namespaces/{ns}/negotiationwidgets':
    why.decoderWords,
  'negotiation: a spec as text: POST /apis/negotiation.parity.example.com/v1/namespaces/{ns}/negotiationwidgets':
    why.scaleOfText,
  'paths: GET /api as application/vnd.kubernetes.protobuf': why.protobuf,
  'paths: GET /openapi/v3/': why.openapi,
  'paths: GET /openapi/v3/nonsense': why.openapi,
  'paths: GET /openapi/v3/apis/nonsense/v1': why.openapi,
  'paths: GET /openapi/v3/version': why.openapi,
  'paths: GET /api/v1/namespaces//configmaps': why.emptySegment,
  'paths: GET /api/v1/namespaces/{ns}//': why.emptySegment,
  'paths: GET /api/v1/watch': why.watchAlone,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&resourceVersion=0': why.paged,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&resourceVersion=0&resourceVersionMatch=NotOlderThan':
    why.paged,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&resourceVersion=<<b.metadata.resourceVersion>>':
    why.looksAhead,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&resourceVersion=<<b.metadata.resourceVersion>>&resourceVersionMatch=Exact':
    why.looksAhead,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&continue=<<page.metadata.continue>>&resourceVersion=0':
    why.paged,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&continue=garbage': why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&continue=garbage&resourceVersion=0':
    why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&continue=garbage&resourceVersion=<<b.metadata.resourceVersion>>':
    why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&limit=2&continue=garbage&resourceVersion=1999999999':
    why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&continue=garbage': why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&continue=garbage&resourceVersion=0':
    why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&continue=garbage&resourceVersion=<<b.metadata.resourceVersion>>':
    why.tokenWords,
  'positions: GET /api/v1/namespaces/{ns}/configmaps?labelSelector=p&continue=garbage&resourceVersion=1999999999':
    why.tokenWords,
  'positions: -1 seconds: GET /api/v1/namespaces/{ns}/configmaps?watch=true&labelSelector=p&timeoutSeconds=-1':
    why.noTime,
  'conditional: any: GET /api as application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList':
    why.etagOfDiscovery,
  'conditional: two: GET /api as application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList':
    why.etagOfDiscovery,
  'conditional: a weak one: GET /api as application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList':
    why.etagOfDiscovery,
  'conditional: any: GET /apis as application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList':
    why.etagOfDiscovery,
  'conditional: two: GET /apis as application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList':
    why.etagOfDiscovery,
  'conditional: a weak one: GET /apis as application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList':
    why.etagOfDiscovery,
  'conditional: GET /openapi/v3': why.openapiIndex,
  'conditional: GET /openapi/v2 as application/yaml': why.whyNot,
  'conditional: GET /openapi/v2 as text/plain': why.whyNot,
  'conditional: GET /openapi/v2 as nonsense': why.whyNot,
  'conditional: GET /openapi/v3/apis/batch/v1 as application/yaml': why.whyNot,
  'conditional: GET /openapi/v3/apis/batch/v1 as text/plain': why.whyNot,
  'conditional: GET /openapi/v3/apis/batch/v1 as nonsense': why.whyNot,
  'conditional: GET /apis as application/json;g=apidiscovery.k8s.io;v=v2': why.lenientType,
  'reviews: a name: POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews': why.fieldsShown,
  'reviews: labels: POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews': why.fieldsShown,
  'reviews: POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews': why.openPaths,
  'reviews: a namespace that does not exist: POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews': why.openPaths,
  'impersonation: an empty user: POST /apis/authentication.k8s.io/v1/selfsubjectreviews': why.credential,
  'impersonation: a group alone: POST /apis/authentication.k8s.io/v1/selfsubjectreviews': why.clientMistake,
  'impersonation: a uid alone: POST /apis/authentication.k8s.io/v1/selfsubjectreviews': why.clientMistake,
  'impersonation: extra alone: POST /apis/authentication.k8s.io/v1/selfsubjectreviews': why.clientMistake,
  'spellings: GET /api/v1/namespaces/{ns}/configmaps/./a': why.dots,
  'spellings: GET /api/v1/namespaces/{ns}/configmaps/../configmaps/a': why.dots,
  'spellings: GET /api/v1/namespaces/{ns}/configmaps/%2e%2e': why.dots,
  'spellings: GET /api/v1/namespaces/{ns}/configmaps/ä': why.httpText,
  'spellings: GET /api/v1/namespaces/{ns}/configmaps/%zz': why.httpText,
  'spellings: GET /apis//apps/v1': why.openapi,
  'spellings: GET /./api/v1': why.dots,
  'spellings: GET /api/./v1': why.dots,
  'spellings: GET /api/v1/../v1/namespaces': why.dots,
  'spellings: GET /healthz/': why.slash,
  'spellings: GET /livez/ping/': why.slash,
  'spellings: GET /openapi/v2/': why.slash,
  'spellings: GET /version/x': why.openapi,
  'spellings: type application/Merge-Patch+json: PATCH /api/v1/namespaces/{ns}/configmaps/a': why.lenientType,
  'corners: new at 7: POST /api/v1/namespaces/{ns}/configmaps?dryRun=All': why.dryRevision,
  'corners: two owners that are null, json: PATCH /apis/corners.parity.example.com/v1/namespaces/{ns}/cornerswidgets/w?dryRun=All':
    why.laterTwice,
}
