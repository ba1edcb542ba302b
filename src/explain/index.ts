// Explains objects to people, in terminals and in browsers. Because of the browsers, it uses nothing of Node and, at
// run time, imports only apimachinery.
export type { Finding, FindingState, SeenObject, Subject } from './finding.ts'
export { ageText } from './age-text.ts'
export { explainObject } from './explain-object.ts'
export type { Surroundings } from './surroundings.ts'
export { explainCluster, explainMember, type ClusterContent } from './explain-cluster.ts'
export { copiesOf, type SeenCopy } from './copies.ts'
export { gateText, remedyOf } from './remedies.ts'
export { findingsText } from './findings-text.ts'
export {
  cpuText,
  memoryText,
  percentText,
  sumOf,
  usageOfMember,
  usageOfMetrics,
  usageOfPods,
  type Resources,
} from './usage.ts'
