"""Networks, depths, objectives and heads of other papers, beside XLNet's."""
