export { CostLimitExceeded, type Activation, type EvaluationLimits } from './evaluate/evaluation.ts'
export { compileExpression, perCallLimit, Program, type CompileFailure, type Outcome } from './kubernetes/program.ts'
export {
  extendEnvironment,
  kubernetesEnvironment,
  type Environment,
  type EnvironmentOptions,
  type Extension,
} from './kubernetes/environment.ts'
