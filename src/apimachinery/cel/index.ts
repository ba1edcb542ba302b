export {
  type FunctionDeclaration,
  type Implementation,
  member,
  overload,
  type StructProvider,
} from './declarations/declarations.ts'
export type { Range } from './cost/range.ts'
export type { Activation, EvaluationLimits } from './evaluate/evaluation.ts'
export {
  type AuthorizationAnswer,
  type AuthorizationQuestion,
  authorizerType,
  authorizerValue,
  type CelAuthorizer,
  requestResourceValue,
  resourceCheckType,
} from './kubernetes/authorizer.ts'
export {
  type Environment,
  type EnvironmentOptions,
  extendEnvironment,
  type Extension,
  kubernetesEnvironment,
} from './kubernetes/environment.ts'
export {
  JsonRoom,
  mutationFunctions,
  mutationJson,
  mutationStructs,
  ObjectValue,
  PatchValue,
} from './kubernetes/mutation.ts'
export { compileExpression, type CompileFailure, type Outcome, perCallLimit, Program } from './kubernetes/program.ts'
export type { Expression } from './syntax/expression.ts'
export { parse as parseExpression } from './syntax/parse.ts'
export * from './types/cel-type.ts'
export * from './types/declared-type.ts'
export { escapeFieldName, unescapeFieldName } from './types/field-names.ts'
export { ArrayList, EntryMap, itemsOf } from './values/collections.ts'
export { dynamicValue, jsonOf, typedValue } from './values/json-values.ts'
export { printValue } from './values/print.ts'
export {
  CelDouble,
  CelDuration,
  CelError,
  CelList,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
  type Value,
} from './values/value.ts'
