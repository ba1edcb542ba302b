export { ObjectGraph } from './object-graph.ts'
