import { a, b as c } from "./x";
import D from '../d';
import * as ns from "pkg";
export * from "./re";
const q = require("./req");
export interface Opt { a: string; b?: number; m(x: number): void }
export type U = "a" | "b" | { x: number };
export class K extends L { private x = 1; static y: string = "s"; constructor(private readonly z: number) { super(); } get v(): number { return 1 } async m<T>(a: T): Promise<T> { return a; } }
export function f(a: number, b = 2): string { return ""; }
export const arrow = (a: number): number => { return a + 1; };
export const obj = { a: 1, b: 2, cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc: 3 };
export default function g() {}
export enum En { A, B = 2 }
declare module "m" { export function h(): void; }
