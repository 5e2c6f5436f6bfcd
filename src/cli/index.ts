/** cli: the command `edubba`. */
export { main } from './main.ts';
