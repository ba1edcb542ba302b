// Explanations of objects for people, in terminals and in browsers: no import of Node, at run time no import at all.
export type { Finding, FindingState, SeenObject, Subject } from './finding.ts'
export { ageText } from './age-text.ts'
export { explainObject } from './explain-object.ts'
export type { Surroundings } from './surroundings.ts'
export { explainCluster, explainMember, type ClusterContent } from './explain-cluster.ts'
export { remedyOf } from './remedies.ts'
export { findingsText } from './findings-text.ts'
